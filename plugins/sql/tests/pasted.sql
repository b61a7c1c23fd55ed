-- What people who come from Flink paste: tables first, then queries over them, each of which must run.
CREATE TABLE bid ( auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, dateTime
  TIMESTAMP(3), extra VARCHAR, proc AS PROCTIME(), price_eur AS price * 0.908, WATERMARK FOR dateTime AS
  dateTime - INTERVAL '4' SECOND ) WITH ( 'connector' = 'kafka', 'topic' = 'nexmark-bid',
  'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'nexmark', 'scan.startup.mode'
  = 'earliest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601',
  'json.ignore-parse-errors' = 'true', 'sink.partitioner' = 'round-robin' );

CREATE TABLE person ( id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state
  VARCHAR, dateTime TIMESTAMP(3), extra VARCHAR, WATERMARK FOR dateTime AS dateTime - INTERVAL '4' SECOND )
  WITH ('connector' = 'kafka', 'topic' = 'nexmark-person', 'properties.bootstrap.servers' =
  'localhost:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE auction ( id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT,
  dateTime TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR, WATERMARK FOR
  dateTime AS dateTime - INTERVAL '4' SECOND ) WITH ('connector' = 'kafka', 'topic' = 'nexmark-auction',
  'properties.bootstrap.servers' = 'localhost:9092', 'scan.startup.mode' = 'earliest-offset', 'format' =
  'json');

CREATE TABLE customers ( customer_id STRING NOT NULL, name STRING, zip STRING, PRIMARY KEY (customer_id) NOT
  ENFORCED ) WITH ('connector' = 'upsert-kafka', 'topic' = 'customers', 'properties.bootstrap.servers' =
  'localhost:9092', 'key.format' = 'raw', 'value.format' = 'avro-confluent', 'value.avro-confluent.url' =
  'http://localhost:8081', 'value.fields-include' = 'EXCEPT_KEY');

CREATE TEMPORARY TABLE rates_history ( currency STRING, conversion_rate DECIMAL(32, 2), update_time
  TIMESTAMP(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL, WATERMARK FOR update_time AS update_time,
  PRIMARY KEY (currency) NOT ENFORCED ) WITH ('connector' = 'kafka', 'topic' = 'rates',
  'properties.bootstrap.servers' = 'localhost:9092', 'value.format' = 'debezium-json', 'scan.startup.mode' =
  'earliest-offset');

CREATE TABLE clicks ( user_id STRING, url STRING, ts BIGINT, rt AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rt
  AS rt - INTERVAL '1' MINUTE ) WITH ('connector' = 'kafka', 'topic' = 'clicks',
  'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json', 'scan.startup.mode' = 'timestamp',
  'scan.startup.timestamp-millis' = '1700000000000');

CREATE TABLE print_it WITH ('connector' = 'print') LIKE bid (EXCLUDING ALL);

CREATE TABLE print_it2 WITH ('connector' = 'print') LIKE bid (EXCLUDING OPTIONS EXCLUDING GENERATED
  EXCLUDING WATERMARKS);

CREATE TABLE IF NOT EXISTS sales (region STRING, product STRING, amount DECIMAL(10, 2), ts TIMESTAMP_LTZ(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS) WITH ('connector' = 'datagen');

CREATE TABLE sales2 (region STRING, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND)
  WITH ('connector' = 'datagen');

CREATE TABLE hits (ip STRING, ts_str STRING, event_time AS TO_TIMESTAMP(ts_str,
  'yyyy-MM-dd''T''HH:mm:ss''Z'''), WATERMARK FOR event_time AS event_time - INTERVAL '30' SECONDS) WITH
  ('connector' = 'datagen');

CREATE TABLE pos_sink (id BIGINT, total DECIMAL(12,2), PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' =
  'upsert-kafka', 'topic' = 'pos', 'properties.bootstrap.servers' = 'localhost:9092', 'key.format' = 'json',
  'value.format' = 'json', 'sink.buffer-flush.max-rows' = '1000', 'sink.buffer-flush.interval' = '1s');

CREATE VIEW expensive (auction, cents) AS SELECT auction, price * 100 FROM bid WHERE price > 100;

CREATE TEMPORARY VIEW IF NOT EXISTS bid_minutes AS SELECT *, DATE_FORMAT(dateTime, 'yyyy-MM-dd HH:mm') AS
  minute_ FROM bid;

CREATE TABLE blackhole_bid (auction BIGINT, bidder BIGINT, price BIGINT, dateTime TIMESTAMP(3), extra
  VARCHAR) WITH ('connector' = 'blackhole');

CREATE TABLE sink_kv (k STRING, v BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'kv',
  'standard-error' = 'true');

CREATE TABLE sink_win (starttime TIMESTAMP(3), endtime TIMESTAMP(3), num BIGINT) WITH ('connector' =
  'blackhole');

CREATE TABLE auction_events ( `id` BIGINT NOT NULL, itemName VARCHAR(2147483647), description VARCHAR,
  initialBid INT, reserve BIGINT, `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category
  INT, extra MAP<STRING, STRING>, tags ARRAY<STRING>, info ROW<channel STRING, `url` STRING 'where', score
  DOUBLE>, WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND ) COMMENT 'auctions' WITH (
  'connector' = 'datagen', 'rows-per-second' = '10', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1',
  'fields.id.end' = '1000', 'fields.itemName.length' = '8', 'fields.initialBid.min' = '1',
  'fields.initialBid.max' = '500' );

CREATE VIEW dear_bids AS SELECT auction, dateTime FROM bid WHERE price > 100;

INSERT INTO blackhole_bid SELECT auction, bidder, price, dateTime, extra FROM bid;

SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;

SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;

SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id WHERE
  A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');

SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra FROM bid B JOIN (SELECT MAX(price) AS maxprice,
  window_end AS dateTime FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY
  window_start, window_end) B1 ON B.price = B1.maxprice WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10'
  SECOND AND B1.dateTime;

SELECT P.id, P.name, P.starttime FROM (SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY id, name,
  window_start, window_end) P JOIN (SELECT seller, window_start AS starttime, window_end AS endtime FROM
  TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY seller, window_start,
  window_end) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;

SELECT id, itemName, price, bid_dateTime FROM (SELECT A.id, A.itemName, B.price, B.dateTime AS bid_dateTime,
  ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum FROM auction A, bid
  B WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires) WHERE rownum <= 1;

SELECT auction, bidder, price, dateTime, extra, DATE_FORMAT(dateTime, 'yyyy-MM-dd'), DATE_FORMAT(dateTime,
  'HH:mm') FROM bid;

SELECT B.bidder, count(*) as bid_count, SESSION_START(B.dateTime, INTERVAL '10' SECOND) AS starttime,
  SESSION_END(B.dateTime, INTERVAL '10' SECOND) AS endtime FROM bid B GROUP BY B.bidder, SESSION(B.dateTime,
  INTERVAL '10' SECOND);

SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime FROM
  TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(dateTime), INTERVAL '10' SECONDS)) GROUP BY
  bidder, window_start, window_end;

SELECT bidder, count(*) AS bid_count, TUMBLE_START(proc, INTERVAL '10' SECOND) AS starttime FROM bid GROUP
  BY bidder, TUMBLE(proc, INTERVAL '10' SECOND);

SELECT auction, bidder, 0.908 * price as price, CASE WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN
  'dayTime' WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS
  bidTimeType, dateTime, extra FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

SELECT DATE_FORMAT(dateTime, 'yyyy-MM-dd') as `day`, count(*) AS total_bids, count(*) filter (where price <
  10000) AS rank1_bids, count(*) filter (where price >= 10000 and price < 1000000) AS rank2_bids,
  count(distinct bidder) AS total_bidders, count(distinct bidder) filter (where price < 10000) AS
  rank1_bidders FROM bid GROUP BY DATE_FORMAT(dateTime, 'yyyy-MM-dd');

SELECT channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') as `day`, max(DATE_FORMAT(dateTime, 'HH:mm')) as
  `minute`, count(*) AS total_bids FROM bid GROUP BY channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd');

SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') as `day`, count(*) AS total_bids, min(price) AS
  min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price FROM bid GROUP BY
  auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd');

SELECT auction, bidder, price, channel, url, dateTime, extra FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY
  bidder, auction ORDER BY dateTime DESC) AS rank_number FROM bid) WHERE rank_number <= 1;

SELECT auction, bidder, price, B.dateTime, A.id FROM bid AS B INNER JOIN auction AS A on B.auction = A.id
  WHERE A.category = 10;

SELECT B.auction, B.bidder, S.`zip` FROM (SELECT *, PROCTIME() as p_time FROM bid) B JOIN customers FOR
  SYSTEM_TIME AS OF B.p_time AS S ON CAST(B.bidder AS STRING) = S.customer_id;

SELECT auction, bidder, price, channel, CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) =
  'google' THEN '1' ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid where
  REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) is not null or lower(channel) in ('apple', 'google');

SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) as dir1, SPLIT_INDEX(url, '/', 4) as dir2
  FROM bid;

SELECT window_start, window_end, SUM(price) AS total FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL
  '10' MINUTES) GROUP BY window_start, window_end;

SELECT window_start, window_end, SUM(price) AS total FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL =>
  DESCRIPTOR(dateTime), SIZE => INTERVAL '10' MINUTES)) GROUP BY window_start, window_end;

SELECT window_start, window_end, channel, SUM(price) FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(dateTime),
  INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)) GROUP BY window_start, window_end, GROUPING SETS ((channel),
  ());

SELECT window_start, window_end, channel, bidder, SUM(price), GROUPING_ID(channel, bidder) FROM
  TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end,
  CUBE (channel, bidder);

SELECT window_start, window_end, channel, SUM(price) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime),
  INTERVAL '10' MINUTES)) GROUP BY window_start, window_end, ROLLUP (channel);

SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, channel ORDER BY dateTime
  DESC) AS rownum FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' MINUTES))) WHERE rownum =
  1;

SELECT window_start AS window_5mintumble_start, window_end, window_time AS rowtime, SUM(price) as partial
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '5' MINUTES)) GROUP BY bidder, window_start,
  window_end, window_time;

SELECT TUMBLE_START(dateTime, INTERVAL '1' HOUR) AS ws, TUMBLE_END(dateTime, INTERVAL '1' HOUR) we,
  TUMBLE_ROWTIME(dateTime, INTERVAL '1' HOUR) rt, COUNT(*) c FROM bid GROUP BY TUMBLE(dateTime, INTERVAL '1'
  HOUR);

SELECT channel, HOP_START(dateTime, INTERVAL '1' MINUTE, INTERVAL '1' HOUR), COUNT(DISTINCT bidder) FROM bid
  GROUP BY HOP(dateTime, INTERVAL '1' MINUTE, INTERVAL '1' HOUR), channel;

SELECT L.auction AS la, R.id AS ra, COALESCE(L.window_start, R.window_start) AS ws FROM (SELECT * FROM
  TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '5' MINUTES))) L FULL JOIN (SELECT * FROM
  TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '5' MINUTES))) R ON L.auction = R.id AND
  L.window_start = R.window_start AND L.window_end = R.window_end;

SELECT b.auction, a.itemName FROM bid b, auction a WHERE b.auction = a.id AND b.dateTime BETWEEN a.dateTime
  - INTERVAL '4' HOUR AND a.dateTime;

SELECT b.auction, a.itemName FROM bid b LEFT JOIN auction a ON b.auction = a.id AND b.dateTime BETWEEN
  a.dateTime AND a.dateTime + INTERVAL '1' DAY;

SELECT b.auction, r.conversion_rate FROM bid AS b LEFT JOIN rates_history FOR SYSTEM_TIME AS OF b.dateTime
  AS r ON b.channel = r.currency;

SELECT o.auction, o.price, c.zip FROM bid AS o JOIN customers FOR SYSTEM_TIME AS OF o.proc AS c ON o.channel
  = c.customer_id;

SELECT
  /*+ LOOKUP('table'='customers', 'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='10s', 'max-attempts'='3') */
  o.auction, c.zip FROM bid AS o LEFT JOIN customers FOR SYSTEM_TIME AS OF o.proc AS c ON o.channel =
  c.customer_id;

SELECT /*+ BROADCAST(a) */ b.auction FROM bid b JOIN auction a ON b.auction = a.id;

SELECT /*+ STATE_TTL('b' = '1d', 'a' = '12h') */ b.auction FROM bid b JOIN auction a ON b.auction = a.id;

SELECT auction FROM bid /*+ OPTIONS('scan.startup.mode'='latest-offset') */ WHERE price > 10;

SELECT id, tag FROM auction_events CROSS JOIN UNNEST(tags) AS t (tag);

SELECT id, k, v FROM auction_events CROSS JOIN UNNEST(extra) AS t (k, v);

SELECT id, tag, ord FROM auction_events LEFT JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, ord) ON TRUE;

SELECT id, t.tag FROM auction_events, UNNEST(tags) AS t(tag);

SELECT id, info.channel, info.`url`, extra['k'], tags[1], CARDINALITY(tags) FROM auction_events;

SELECT `id`, (info).score FROM auction_events;

SELECT auction FROM bid NATURAL JOIN person;

SELECT * FROM bid JOIN auction USING (dateTime);

SELECT auction FROM bid UNION ALL SELECT id FROM auction;

SELECT auction FROM bid UNION SELECT id FROM auction;

SELECT DISTINCT auction FROM bid;

SELECT * FROM bid LIMIT 5;

SELECT * FROM bid FETCH FIRST 5 ROWS ONLY;

WITH top_ AS (SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction) SELECT * FROM top_ WHERE n > 3;

SELECT auction, COUNT(*) FROM bid GROUP BY auction HAVING COUNT(*) > 10;

SELECT channel, COUNT(*), GROUPING(channel) FROM bid GROUP BY GROUPING SETS ((channel), (auction), ());

VALUES (1, 'a'), (2, 'b');

SELECT * FROM (VALUES ('Alice', 12), ('Bob', 7)) AS t (name, age);

SELECT name, COUNT(*) AS cnt FROM (VALUES ('Bob'), ('Alice'), ('Greg'), ('Bob')) AS NameTable(name) GROUP BY
  name;

INSERT INTO sink_kv VALUES ('a', 1), ('b', 2);

INSERT INTO sink_kv (v, k) SELECT price, channel FROM bid;

INSERT INTO sink_kv (k) SELECT channel FROM bid;

INSERT INTO sink_kv SELECT channel, COUNT(*) FROM bid GROUP BY channel;

INSERT INTO pos_sink SELECT auction, CAST(SUM(price) AS DECIMAL(12, 2)) FROM bid GROUP BY auction;

INSERT INTO pos_sink SELECT auction, SUM(price_eur) FROM bid GROUP BY auction;

INSERT INTO sink_win SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE bid,
  DESCRIPTOR(dateTime), INTERVAL '1' DAY)) GROUP BY window_start, window_end;

EXECUTE INSERT INTO sink_kv SELECT channel, 1 FROM bid;

EXECUTE STATEMENT SET BEGIN INSERT INTO sink_kv SELECT channel, price FROM bid; INSERT INTO blackhole_bid
  SELECT auction, bidder, price, dateTime, extra FROM bid; END;

BEGIN STATEMENT SET; INSERT INTO sink_kv SELECT channel, price FROM bid; INSERT INTO sink_kv SELECT extra,
  price FROM bid WHERE price > 3; END;

EXPLAIN SELECT * FROM bid;

EXPLAIN PLAN FOR SELECT * FROM bid;

EXPLAIN ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN SELECT auction, COUNT(*) FROM bid GROUP BY
  auction;

EXPLAIN INSERT INTO sink_kv SELECT channel, price FROM bid;

EXPLAIN STATEMENT SET BEGIN INSERT INTO sink_kv SELECT channel, price FROM bid; INSERT INTO sink_kv SELECT
  extra, price FROM bid; END;

CREATE TABLE ctas WITH ('connector' = 'blackhole') AS SELECT auction, price FROM bid;

CREATE OR REPLACE TABLE ctas WITH ('connector' = 'blackhole') AS SELECT auction FROM bid;

SELECT JSON_VALUE(extra, '$.a.b'), JSON_VALUE(extra, '$.n' RETURNING INTEGER DEFAULT 0 ON EMPTY DEFAULT -1
  ON ERROR), JSON_QUERY(extra, '$.arr' WITHOUT WRAPPER), JSON_EXISTS(extra, '$.x' FALSE ON ERROR) FROM bid;

SELECT CAST(price AS VARCHAR), CAST(channel AS INTEGER), TRY_CAST(channel AS DOUBLE), CAST(dateTime AS
  DATE), CAST(dateTime AS TIME), CAST('2024-01-01' AS DATE), CAST(price AS DECIMAL) FROM bid;

SELECT dateTime + INTERVAL '1' HOUR, dateTime - INTERVAL '1-2' YEAR TO MONTH, dateTime + INTERVAL
  '1 10:20:30' DAY TO SECOND, INTERVAL '10' DAY, INTERVAL '2 3' DAY TO HOUR FROM bid;

SELECT TIMESTAMPDIFF(SECOND, dateTime, CURRENT_TIMESTAMP), TIMESTAMPADD(MINUTE, 5, dateTime),
  TO_TIMESTAMP('2020-01-01 00:00:00'), TO_DATE('2020-01-01'), EXTRACT(DAY FROM dateTime), YEAR(dateTime),
  DAYOFWEEK(dateTime), QUARTER(dateTime), FLOOR(dateTime TO HOUR), UNIX_TIMESTAMP(),
  UNIX_TIMESTAMP('2020-01-01', 'yyyy-MM-dd'), FROM_UNIXTIME(price, 'yyyy'), NOW(), CURRENT_DATE,
  CURRENT_TIME, LOCALTIME FROM bid;

SELECT UPPER(channel), LOWER(channel), INITCAP(channel), CONCAT(channel, '-', url), CONCAT_WS(',', channel,
  url), SUBSTR(channel, 2), SUBSTRING(channel, 2, 3), LEFT(channel, 2), RIGHT(channel, 2), REPEAT(channel,
  2), REVERSE(channel), LPAD(channel, 5, '0'), INSTR(channel, 'a'), LOCATE('a', channel), ASCII(channel),
  CHR(65), ENCODE(channel, 'UTF-8'), DECODE(ENCODE(channel, 'UTF-8'), 'UTF-8'), REGEXP_REPLACE(channel,
  '[0-9]', ''), TRANSLATE(channel, 'a', 'b'), MD5(channel), TRIM(channel), STARTSWITH(channel, 'a'),
  ENDSWITH(channel, 'a'), URL_ENCODE(url), URL_DECODE(url), PRINTF('%d', price), ELT(1, 'a', 'b'),
  BTRIM(channel), REGEXP_COUNT(channel, 'a'), REGEXP_SUBSTR(channel, 'a'), REGEXP_INSTR(channel, 'a'),
  REGEXP_EXTRACT_ALL(channel, 'a'), STR_TO_MAP(extra)['a'] FROM bid;

SELECT ABS(price), POWER(price, 2), SQRT(price), LN(price), LOG10(price), LOG(2, price), EXP(1), ROUND(price
  / 3.0, 2), SIGN(price), PI(), E(), RAND(), RAND_INTEGER(5), BIN(price), HEX(price), TRUNCATE(1.234, 2),
  CEIL(1.5), FLOOR(1.5), MOD(price, 3), price % 3, UUID(), PERCENTILE(price, 0.5) FROM bid GROUP BY price;

SELECT ARRAY[1, 2, 3], MAP['a', 1], ROW(1, 'x'), ARRAY_CONTAINS(ARRAY[1], 1), ARRAY_DISTINCT(ARRAY[1, 1]),
  ARRAY_JOIN(ARRAY['a'], ','), ARRAY_MAX(ARRAY[1]), ARRAY_APPEND(ARRAY[1], 2), ARRAY_PREPEND(ARRAY[1], 2),
  ARRAY_REMOVE(ARRAY[1], 1), ARRAY_POSITION(ARRAY[1], 1), ARRAY_UNION(ARRAY[1], ARRAY[2]),
  ARRAY_EXCEPT(ARRAY[1], ARRAY[2]), ARRAY_INTERSECT(ARRAY[1], ARRAY[2]), MAP_KEYS(MAP['a', 1]),
  MAP_VALUES(MAP['a', 1]), MAP_ENTRIES(MAP['a', 1]), MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1]),
  CARDINALITY(MAP['a', 1]), ELEMENT(ARRAY[1]), SPLIT('a,b', ',') FROM bid;

SELECT LISTAGG(channel, '|') WITHIN GROUP (ORDER BY price) FROM bid;

SELECT CAST(ROW(1, 'a') AS ROW<x INT, y STRING>).x FROM bid;

SELECT DATE '2024-01-01', TIME '10:00:00', TIMESTAMP '2024-01-01 00:00:00', X'4142', U&'\0041', 1e3, 1.5,
  -3, NULL, TRUE FROM bid;

SELECT auction, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime
  ASC) AS rownum FROM bid) WHERE rownum = 1;

SELECT auction, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price) AS rownum FROM
  bid) WHERE rownum = 1;

SELECT b.auction FROM bid b JOIN (SELECT DISTINCT id FROM auction WHERE category = 5) AS a ON b.auction =
  a.id;

SELECT CASE channel WHEN 'a' THEN 1 ELSE 0 END, IF(price > 3, 'x', 'y'), IFNULL(channel, ''), channel IS
  DISTINCT FROM url, channel IS NOT DISTINCT FROM url, price BETWEEN SYMMETRIC 3 AND 1, price BETWEEN
  ASYMMETRIC 1 AND 3, channel NOT LIKE 'a%', price IN (1, 2), (price > 3) IS TRUE, (price > 3) IS UNKNOWN,
  (price > 3) IS NOT FALSE, (price > 3) IS NOT UNKNOWN FROM bid;

SELECT FIRST_VALUE(price), LAST_VALUE(price), LISTAGG(channel, '|'), STDDEV_POP(price), VAR_SAMP(price),
  ARRAY_AGG(channel), COUNT(DISTINCT channel, bidder), APPROX_COUNT_DISTINCT(bidder), MIN(channel),
  BOOL_AND(price > 3), SUM(price) FILTER (WHERE price > 3), STDDEV(price) FROM bid;

SELECT auction, MAX(price) AS m FROM bid WHERE channel LIKE '%a%' GROUP BY auction HAVING MAX(price) > 10
  AND COUNT(DISTINCT bidder) > 2;

SELECT CURRENT_TIMESTAMP, NOW(), LOCALTIMESTAMP, CAST(CURRENT_TIMESTAMP AS TIMESTAMP(3)),
  TO_TIMESTAMP_LTZ(1000, 3) AT TIME ZONE 'UTC' FROM bid;

SELECT ts, SUM(amount) FROM sales GROUP BY ts, region;

SELECT CONCAT_WS('-', channel, CAST(price AS STRING)), channel || '-' || CAST(price AS VARCHAR(10)),
  OVERLAY(channel PLACING 'x' FROM 1 FOR 2) FROM bid;

SELECT window_start, COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY (bidder, channel),
  DESCRIPTOR(dateTime), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, bidder, channel;

SELECT window_start, COUNT(*) FROM TABLE(SESSION(DATA => TABLE bid PARTITION BY bidder, TIMECOL =>
  DESCRIPTOR(dateTime), GAP => INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, bidder;

SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE dear_bids, DESCRIPTOR(dateTime), INTERVAL '1' MINUTE))
  GROUP BY window_start, window_end;

SELECT id, initialBid FROM auction_events QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY dateTime) = 1;

SELECT EXTRACT(EPOCH FROM dateTime), EXTRACT(DOW FROM dateTime), EXTRACT(WEEK FROM dateTime), CEIL(dateTime
  TO DAY), TIMESTAMPDIFF(DAY, dateTime, TIMESTAMP '2024-01-01 00:00:00'), DATEDIFF('2024-01-02',
  '2024-01-01') FROM bid;
