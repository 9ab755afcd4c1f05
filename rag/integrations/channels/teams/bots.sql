-- A company's bot in Microsoft Teams.

-- set_teams_bot --
-- Keep the bot; an empty secret leaves the one that is kept.
INSERT INTO teams_bots AS t (tenant_id, app_id, key_hash, directories, secret, collection_id)
SELECT rag_tenant(), %(app_id)s, decode(%(key_hash)s, 'hex'), %(directories)s, %(secret)s,
       (SELECT id FROM collections WHERE id = %(collection_id)s)
ON CONFLICT (tenant_id) DO UPDATE SET
    app_id = excluded.app_id, key_hash = excluded.key_hash, directories = excluded.directories,
    collection_id = excluded.collection_id,
    secret = CASE WHEN excluded.secret = '' THEN t.secret ELSE excluded.secret END
RETURNING id

-- get_teams_bot --
-- Read the company's bot.
SELECT tenant_id, app_id, directories, secret, collection_id, is_active, created_at
FROM teams_bots WHERE tenant_id = (SELECT rag_tenant())

-- switch_teams_bot --
-- Have the bot answer, or no longer.
UPDATE teams_bots SET is_active = %(is_active)s WHERE tenant_id = rag_tenant()

-- remove_teams_bot --
-- Remove the bot; return it, its secret encrypted, to put back.
DELETE FROM teams_bots WHERE tenant_id = rag_tenant() RETURNING to_jsonb(teams_bots)::text

-- put_teams_bot_back --
-- Keep the bot again, as it was.
INSERT INTO teams_bots SELECT * FROM jsonb_populate_record(NULL::teams_bots, %(kept)s::jsonb) RETURNING id

-- tenant_of_teams_bot --
-- Find the company of a bot; needs the hash of its application id presented.
SELECT tenant_id FROM teams_bots WHERE key_hash = decode(%(key_hash)s, 'hex')
