-- Page views per region: two Kafka topics in, one compacted Kafka topic out.

CREATE TABLE pageviews (
  user_id  BIGINT,
  page_id  BIGINT,
  viewtime TIMESTAMP(3),
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'pageviews',
  'properties.bootstrap.servers' = '${BROKERS}',
  'properties.group.id' = 'demo',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE logins (
  user_id   BIGINT,
  region    STRING,
  logintime TIMESTAMP(3),
  WATERMARK FOR logintime AS logintime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'logins',
  'properties.bootstrap.servers' = '${BROKERS}',
  'properties.group.id' = 'demo',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE pageviews_per_region (
  user_region STRING,
  pv          BIGINT,
  uv          BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'pageviews_per_region',
  'properties.bootstrap.servers' = '${BROKERS}',
  'key.format' = 'json',
  'value.format' = 'json'
);

-- A view counts for the region its user logged in from within the hour before it.
INSERT INTO pageviews_per_region
SELECT l.region, COUNT(*), COUNT(DISTINCT v.user_id)
FROM pageviews AS v
JOIN logins AS l
  ON v.user_id = l.user_id
 AND v.viewtime BETWEEN l.logintime AND l.logintime + INTERVAL '1' HOUR
GROUP BY l.region;
