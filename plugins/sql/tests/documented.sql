-- The statements of the connectors' public documentation, elided options completed.
CREATE TABLE plain (
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING,
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'testGroup',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'csv'
);

CREATE TABLE with_metadata (
  `event_time` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `partition` BIGINT METADATA VIRTUAL,
  `offset` BIGINT METADATA VIRTUAL,
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'testGroup',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'csv'
);

CREATE TABLE with_format_metadata (
  `event_time` TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,  -- from the format
  `origin_table` STRING METADATA FROM 'value.source.table' VIRTUAL, -- from the format
  `partition_id` BIGINT METADATA FROM 'partition' VIRTUAL,  -- from the connector
  `offset` BIGINT METADATA VIRTUAL,  -- from the connector
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'testGroup',
  'scan.startup.mode' = 'earliest-offset', 'value.format' = 'debezium-json'
);

CREATE TABLE value_format (
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',

  'format' = 'json',
  'json.ignore-parse-errors' = 'true'
);

CREATE TABLE key_and_value_format (
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',

  'key.format' = 'json', 'key.json.ignore-parse-errors' = 'true', 'key.fields' = 'user_id;item_id',

  'value.format' = 'json', 'value.json.fail-on-missing-field' = 'false',
  'value.fields-include' = 'ALL'
);

CREATE TABLE overlapping_fields (
  `k_version` INT, `k_user_id` BIGINT, `k_item_id` BIGINT, `version` INT, `behavior` STRING
) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',

  'key.format' = 'json', 'key.fields-prefix' = 'k_',
  'key.fields' = 'k_version;k_user_id;k_item_id',

  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE sasl_plain (
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING,
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json',
  'properties.security.protocol' = 'SASL_PLAINTEXT',
  'properties.sasl.mechanism' = 'PLAIN',
  'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required username=\"username\" password=\"password\";'
);

CREATE TABLE sasl_scram (
  `user_id` BIGINT, `item_id` BIGINT, `behavior` STRING,
  `ts` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json',
  'properties.security.protocol' = 'SASL_SSL',
  /* SSL configurations */
  /* the truststore (CA) of the server */
  'properties.ssl.truststore.location' = '/path/to/kafka.client.truststore.jks',
  'properties.ssl.truststore.password' = 'test1234',
  /* the keystore, where clients authenticate */
  'properties.ssl.keystore.location' = '/path/to/kafka.client.keystore.jks',
  'properties.ssl.keystore.password' = 'test1234',
  /* SASL configurations */
  'properties.sasl.mechanism' = 'SCRAM-SHA-256',
  'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.scram.ScramLoginModule required username=\"username\" password=\"password\";'
);

CREATE TABLE user_events (
  user_id    BIGINT,
  item_id    BIGINT,
  category   STRING,
  behavior   STRING,
  event_ts   TIMESTAMP(3) METADATA FROM 'timestamp',
  proctime   AS PROCTIME(),
  WATERMARK FOR event_ts AS event_ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'user_events',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'flink-consumer-group',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE order_events_sink (
  order_id BIGINT, product STRING, amount DECIMAL(10, 2), created_at TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'order_events',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json'
);

INSERT INTO order_events_sink
SELECT order_id, product, amount, created_at
FROM orders_source
WHERE amount > 0;

CREATE TABLE avro_events (
  user_id BIGINT, message STRING, event_ts TIMESTAMP(3)
) WITH (
  'connector' = 'kafka', 'topic' = 'avro_events',
  'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'avro-group',
  'scan.startup.mode' = 'latest-offset', 'format' = 'avro'
);

CREATE TABLE keyed_events (
  user_id BIGINT, payload STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'keyed_topic',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'key.fields' = 'user_id',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE exactly_once_sink (
  id BIGINT, value STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'output_topic',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'flink-txn'
);

CREATE TABLE pageviews_per_region (
  region STRING, pv BIGINT, uv BIGINT,
  PRIMARY KEY (region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'pageviews_per_region',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'avro', 'value.format' = 'avro'
);

CREATE TABLE pageviews (
  user_id BIGINT, page_id BIGINT, viewtime TIMESTAMP, user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'pageviews',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json'
);

-- page views and visitors per region
INSERT INTO pageviews_per_region
SELECT
  user_region,
  COUNT(*),
  COUNT(DISTINCT user_id)
FROM pageviews
GROUP BY user_region;

CREATE TABLE upsert_kafka_sink (
  user_region STRING, pv BIGINT, uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '<yourTopicName>',
  'properties.bootstrap.servers' = '<host:port>',
  'key.format' = 'avro', 'value.format' = 'avro'
);

CREATE TABLE KinesisTable (
  `user_id` BIGINT, `item_id` BIGINT, `category_id` BIGINT, `behavior` STRING, `ts` TIMESTAMP(3)
)
PARTITIONED BY (user_id, item_id)
WITH (
  'connector' = 'kinesis',
  'stream.arn' = 'arn:aws:kinesis:us-east-1:012345678901:stream/my-stream-name',
  'aws.region' = 'us-east-1', 'source.init.position' = 'LATEST', 'format' = 'csv'
);

CREATE TABLE KinesisLegacyTable (
  `user_id` BIGINT, `item_id` BIGINT, `category_id` BIGINT, `behavior` STRING, `ts` TIMESTAMP(3),
  `arrival_time` TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,
  `shard_id` VARCHAR(128) NOT NULL METADATA FROM 'shard-id' VIRTUAL,
  `sequence_number` VARCHAR(128) NOT NULL METADATA FROM 'sequence-number' VIRTUAL
)
PARTITIONED BY (user_id, item_id)
WITH (
  'connector' = 'kinesis-legacy', 'stream' = 'user_behavior',
  'aws.region' = 'us-east-2', 'scan.stream.initpos' = 'LATEST', 'format' = 'csv'
);
