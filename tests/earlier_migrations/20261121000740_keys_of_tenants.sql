-- A row of one tenant cannot point at a row of another: every reference between tables with tenant data carries the
-- tenant as well. Row-level security hides such rows; this makes the database refuse them, whoever writes them.

DO $$
DECLARE
    found record;
    table_name text;
    tables text[];
BEGIN
    SELECT array_agg(c.relname) INTO tables FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relforcerowsecurity;

    -- What is there is checked too, and the owner of the tables has to see it for that.
    FOREACH table_name IN ARRAY tables LOOP
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', table_name);
    END LOOP;

    FOR found IN
        SELECT k.conname, k.condeferrable, k.condeferred, k.confdeltype,
               pointing.relname AS pointing, target.relname AS target,
               a.attname AS key_column, b.attname AS target_column
        FROM pg_constraint k
        JOIN pg_class pointing ON pointing.oid = k.conrelid
        JOIN pg_class target ON target.oid = k.confrelid
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
        JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
        WHERE k.contype = 'f' AND cardinality(k.conkey) = 1
          AND pointing.relnamespace = 'public'::regnamespace AND target.relnamespace = 'public'::regnamespace
          AND pointing.relname = ANY (tables) AND target.relname = ANY (tables)
        ORDER BY pointing.relname, k.conname
    LOOP
        IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = format('public.%I', found.target)::regclass
                       AND conname = found.target || '_of_tenant') THEN
            EXECUTE format('ALTER TABLE %1$I ADD CONSTRAINT %2$I UNIQUE (%3$I, tenant_id)',
                           found.target, found.target || '_of_tenant', found.target_column);
        END IF;
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', found.pointing, found.conname);
        EXECUTE format(
            'ALTER TABLE %1$I ADD CONSTRAINT %2$I FOREIGN KEY (%3$I, tenant_id) REFERENCES %4$I (%5$I, tenant_id) '
            'ON DELETE %6$s %7$s',
            found.pointing, found.conname, found.key_column, found.target, found.target_column,
            CASE found.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'r' THEN 'RESTRICT'
                -- Of the two columns only the one that pointed becomes null.
                WHEN 'n' THEN format('SET NULL (%I)', found.key_column) ELSE 'NO ACTION' END,
            CASE WHEN found.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED'
                WHEN found.condeferrable THEN 'DEFERRABLE' ELSE '' END);
    END LOOP;

    -- These had no reference at all. What only serves searching and belongs to nothing any more is of no use.
    FOREACH table_name IN ARRAY ARRAY['chunk_terms', 'chunk_bits', 'keyword_documents'] LOOP
        EXECUTE format('DELETE FROM %I AS t WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = t.document_id)',
                       table_name);
        EXECUTE format('ALTER TABLE %I ADD FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) '
                       'ON DELETE CASCADE', table_name);
    END LOOP;
    FOREACH table_name IN ARRAY ARRAY['chunk_terms', 'chunk_bits'] LOOP
        EXECUTE format('ALTER TABLE %I ADD FOREIGN KEY (collection_id, tenant_id) REFERENCES collections '
                       '(id, tenant_id) ON DELETE CASCADE', table_name);
    END LOOP;

    FOREACH table_name IN ARRAY tables LOOP
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', table_name);
    END LOOP;
END
$$;
