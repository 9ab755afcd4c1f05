-- What a company's directory reads and writes by SCIM: its people and groups.

-- name_groups --
-- Give every group that somebody was put into by hand its id.
INSERT INTO user_groups (tenant_id, name)
SELECT DISTINCT rag_tenant(), user_group FROM accounts WHERE tenant_id = rag_tenant() AND user_group <> ''
ON CONFLICT (tenant_id, name) DO NOTHING

-- provisioned_people --
-- List the people that meet the given conditions, the oldest account first.
SELECT a.id, a.email, a.name, a.role, a.is_active, a.directory_fields, a.created_at, g.id AS group_id,
       coalesce(g.name, '') AS group_name
FROM accounts a LEFT JOIN user_groups g ON g.tenant_id = a.tenant_id AND g.name = a.user_group
WHERE a.tenant_id = rag_tenant() AND a.removed_by_directory_at IS NULL
  AND (%(id)s::text IS NULL OR a.id::text = %(id)s)
  AND (%(name)s::text IS NULL OR a.email = lower(%(name)s))
  AND (%(external_id)s::text IS NULL OR a.directory_fields ->> 'externalId' = %(external_id)s)
ORDER BY a.created_at, a.id LIMIT %(limit)s OFFSET %(offset)s

-- count_provisioned_people --
-- Count the people that meet the given conditions.
SELECT count(*) FROM accounts a
WHERE a.tenant_id = rag_tenant() AND a.removed_by_directory_at IS NULL
  AND (%(id)s::text IS NULL OR a.id::text = %(id)s)
  AND (%(name)s::text IS NULL OR a.email = lower(%(name)s))
  AND (%(external_id)s::text IS NULL OR a.directory_fields ->> 'externalId' = %(external_id)s)

-- restore_provisioned_person --
-- Take an account back that the directory had deleted, for the same address.
UPDATE accounts SET removed_by_directory_at = NULL
WHERE tenant_id = rag_tenant() AND email = %(email)s AND removed_by_directory_at IS NOT NULL
RETURNING id

-- write_provisioned_person --
-- Write what the directory says of a person.
UPDATE accounts
SET email = %(email)s, name = %(name)s, is_active = %(is_active)s, directory_fields = %(directory_fields)s
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- remove_provisioned_person --
-- Disable a person whom the directory has deleted, and take them out of their group.
UPDATE accounts SET is_active = false, user_group = '', removed_by_directory_at = now()
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- provisioned_groups --
-- List the groups that meet the given conditions with their people, the oldest first.
SELECT g.id, g.name, g.external_id, g.created_at,
       coalesce((SELECT jsonb_agg(jsonb_build_array(a.id, a.name) ORDER BY a.created_at, a.id) FROM accounts a
                 WHERE a.tenant_id = g.tenant_id AND a.user_group = g.name AND a.removed_by_directory_at IS NULL),
                '[]') AS members
FROM user_groups g
WHERE g.tenant_id = rag_tenant()
  AND (%(id)s::text IS NULL OR g.id::text = %(id)s)
  AND (%(name)s::text IS NULL OR lower(g.name) = lower(%(name)s))
  AND (%(external_id)s::text IS NULL OR g.external_id = %(external_id)s)
ORDER BY g.created_at, g.id LIMIT %(limit)s OFFSET %(offset)s

-- count_provisioned_groups --
-- Count the groups that meet the given conditions.
SELECT count(*) FROM user_groups g
WHERE g.tenant_id = rag_tenant()
  AND (%(id)s::text IS NULL OR g.id::text = %(id)s)
  AND (%(name)s::text IS NULL OR lower(g.name) = lower(%(name)s))
  AND (%(external_id)s::text IS NULL OR g.external_id = %(external_id)s)

-- add_provisioned_group --
-- Add a group without anybody in it.
INSERT INTO user_groups (tenant_id, name, external_id) VALUES (rag_tenant(), %(name)s, %(external_id)s) RETURNING id

-- write_provisioned_group --
-- Rename a group for its people and for the collections they may read.
WITH renamed AS (
    UPDATE user_groups SET name = %(name)s, external_id = %(external_id)s
    WHERE tenant_id = rag_tenant() AND id = %(id)s
), people AS (
    UPDATE accounts SET user_group = %(name)s
    WHERE tenant_id = rag_tenant() AND user_group = %(before)s AND %(before)s::text <> %(name)s::text
)
UPDATE collections SET groups = array_replace(groups, %(before)s::text, %(name)s::text)
WHERE tenant_id = rag_tenant() AND %(before)s::text = ANY (groups) AND %(before)s::text <> %(name)s::text

-- write_members --
-- Put exactly these people into a group: who is not named leaves it. Return whose group changed.
UPDATE accounts SET user_group = CASE WHEN id = ANY (%(members)s::uuid[]) THEN %(name)s ELSE '' END
WHERE tenant_id = rag_tenant()
  AND ((id = ANY (%(members)s::uuid[]) AND user_group <> %(name)s)
       OR (user_group = %(name)s AND id <> ALL (%(members)s::uuid[])))
RETURNING id

-- count_people_of --
-- Count how many of these people there are.
SELECT count(*) FROM accounts
WHERE tenant_id = rag_tenant() AND removed_by_directory_at IS NULL AND id = ANY (%(members)s::uuid[])

-- remove_provisioned_group --
-- Delete a group.
DELETE FROM user_groups WHERE tenant_id = rag_tenant() AND id = %(id)s
