-- What an entry of the audit log is about, whatever it was called: of a document the id that all its versions share.

ALTER TABLE audit_log ADD COLUMN thing_id text NOT NULL DEFAULT '';
-- Entries of before acts were known are each an act of their own.
CREATE INDEX audit_log_acts ON audit_log (tenant_id, (coalesce(act, 'entry ' || id::text)));

CREATE OR REPLACE FUNCTION public.audit_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE to_jsonb(NEW) END;
    known jsonb := CASE WHEN TG_OP = 'DELETE' THEN old_row ELSE new_row END;
    label text := coalesce(known ->> TG_ARGV[1], '');
    what jsonb := '{}';
    field text;
BEGIN
    IF public.rag_account() IS NULL THEN
        RETURN NULL;
    END IF;
    FOREACH field IN ARRAY TG_ARGV[2:] LOOP
        IF old_row -> field IS DISTINCT FROM new_row -> field THEN
            what := what || jsonb_build_object(field, CASE WHEN field LIKE '%\_hash' THEN '"changed"'::jsonb
                ELSE jsonb_build_array(old_row -> field, new_row -> field) END);
        END IF;
    END LOOP;
    IF TG_ARGV[1] = 'account_id' THEN
        label := coalesce((SELECT a.email FROM public.accounts a WHERE a.id::text = label), label);
    END IF;
    IF TG_OP <> 'UPDATE' OR what <> '{}' THEN
        INSERT INTO public.audit_log (tenant_id, account_id, actor, action, target_id, thing_id, target, changes)
        VALUES (public.rag_tenant(), public.rag_account(), public.rag_actor(),
                TG_ARGV[0] || CASE TG_OP WHEN 'INSERT' THEN ' added' WHEN 'DELETE' THEN ' deleted' ELSE ' changed' END,
                coalesce(known ->> 'id', ''), coalesce(known ->> 'original_id', known ->> 'id', ''), label, what);
    END IF;
    RETURN NULL;
END
$$;
