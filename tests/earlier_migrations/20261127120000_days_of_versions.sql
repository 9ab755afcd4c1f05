-- The first and the last day are those of a version: a new file of a document begins without them.
CREATE OR REPLACE FUNCTION public.name_first_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    earlier public.documents;
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    IF NEW.original_id <> NEW.id THEN
        SELECT * INTO earlier FROM public.documents d
        WHERE d.tenant_id = NEW.tenant_id AND d.original_id = NEW.original_id
        ORDER BY d.version DESC LIMIT 1;
        IF FOUND THEN
            NEW.folder := earlier.folder;
            NEW.tags := earlier.tags;
            NEW.owner_id := earlier.owner_id;
            IF NEW.sha256 = earlier.sha256 THEN
                NEW.valid_from := earlier.valid_from;
                NEW.valid_until := earlier.valid_until;
            END IF;
            NEW.review_on := earlier.review_on;
            NEW.corrected_language := earlier.corrected_language;
            IF earlier.metadata @> '{"is_named": true}' THEN
                NEW.title := earlier.title;
                NEW.metadata := NEW.metadata || '{"is_named": true}';
            END IF;
        END IF;
    END IF;
    RETURN NEW;
END
$$;
