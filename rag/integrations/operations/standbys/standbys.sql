-- log_position --
-- Read the last position in the log, in bytes, written or replayed, and whether the server is a standby.
SELECT coalesce(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0', 0)::bigint
           AS position,
       pg_is_in_recovery() AS is_standby
