/// The SQL of two published tutorials, with the templates' variables filled in.
enum TutorialStatements {
    static let balloonSource = """
        -- source events from Kafka
        CREATE SOURCE IF NOT EXISTS balloon_game_events (
         player string,
         balloon_color string,
         score integer,
         page_id integer,
         favorite_color_bonus boolean,
         event_ts timestamptz
        )
        WITH (
         connector='kafka',
         topic='balloon-game',
         properties.bootstrap.server='my-cluster-kafka-bootstrap.kafka:9092',
         scan.startup.mode='latest'
        ) FORMAT PLAIN ENCODE JSON;

        -- Leaderboard stats
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_leaderboard AS
          SELECT
            player,
            sum(score) as total_score,
            count(case when favorite_color_bonus = true then 1 end) as bonus_hits,
            max(event_ts) as event_ts
          FROM balloon_game_events
          GROUP BY player;

        -- Overall Color Stats
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_balloon_color_stats AS
         SELECT
           player,
           balloon_color,
           count(*) as balloon_pops,
           sum(score) as points_by_color,
           count(CASE WHEN favorite_color_bonus = true THEN 1 END) as bonus_hits,
           max(event_ts) as event_ts
         FROM balloon_game_events
         GROUP BY
           player,
           balloon_color;

        -- Timeseries
        -- Leaderboard over window of 15 seconds
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_realtime_scores AS
          SELECT
            player,
            sum(score) as total_score,
            window_start,
            window_end
          FROM TUMBLE(balloon_game_events, event_ts, INTERVAL '15 SECONDS')
          GROUP BY
            player,
            window_start,
            window_end;

        -- Analyze the various balloon_color pops in 15 seconds
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_balloon_colored_pops AS
         SELECT
           player,
           balloon_color,
           count(*) as balloon_pops,
           sum(score) as points_by_color,
           count(CASE WHEN favorite_color_bonus = true THEN 1 END) as bonus_hits,
           window_start,
           window_end
         FROM TUMBLE(balloon_game_events, event_ts, INTERVAL '15 SECONDS')
         GROUP BY
           player,
           balloon_color,
           window_start,
           window_end;

        -- Color based performance
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_color_performance_trends AS
         SELECT
          balloon_color,
          avg(score) as avg_score_per_pop,
          count(*) as total_pops,
          window_start,
          window_end
         FROM TUMBLE(balloon_game_events, event_ts, INTERVAL '15 SECONDS')
         GROUP BY
            balloon_color,
            window_start,
            window_end;
        """

    static let balloonSink = """
        CREATE SINK IF NOT EXISTS leaderboard
         FROM mv_leaderboard
         WITH (
           connector='iceberg',
           type = 'append-only',
           force_append_only='true',
           database.name = 'balloon_pops',
           table.name = 'leaderboard',

           warehouse.path = 'balloon-game',
           catalog.name = 'balloon-game',
           catalog.type = 'rest',
           catalog.uri = 'http://polaris:8181/api/catalog',
           catalog.credential = 'id:secret',
           catalog.scope='PRINCIPAL_ROLE:ALL',
           s3.endpoint = 'http://localstack:4566',
           s3.access.key = 'test',
           s3.secret.key = 'test',
           s3.region = 'us-east-1',
           s3.path.style.access = 'true'
        );
        """

    static let balloonQueries = """
        SHOW SOURCES;
        show materialized views;
        SHOW SINKS;
        SELECT * FROM mv_leaderboard LIMIT 5;
        SELECT COUNT(*) FROM mv_leaderboard;
        """

    static let deltaMerge = """
        DROP SOURCE IF EXISTS user_events CASCADE;
        DROP MATERIALIZED VIEW IF EXISTS latest_user_state CASCADE;

        CREATE SOURCE user_events (
            id INT,
            name VARCHAR,
            age INT,
            op VARCHAR,
            event_order BIGINT,
            ts TIMESTAMP
        )
        WITH (
            connector = 'kafka',
            topic = 'user-events',
            properties.bootstrap.server = 'localhost:9092',
            scan.startup.mode = 'earliest'
        )
        FORMAT PLAIN ENCODE JSON;

        CREATE MATERIALIZED VIEW latest_user_state AS
        SELECT e.id, e.name, e.age
        FROM user_events e
        JOIN (
            SELECT id, MAX(event_order) AS latest_order
            FROM user_events
            GROUP BY id
        ) latest
          ON e.id = latest.id AND e.event_order = latest.latest_order
        WHERE e.op != 'delete';

        SELECT * FROM user_events ORDER BY event_order DESC LIMIT 20;
        SELECT * FROM latest_user_state ORDER BY id;
        """

    static let all = [balloonSource, balloonSink, balloonQueries, deltaMerge]
}
