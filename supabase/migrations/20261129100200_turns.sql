-- The queue of many tenants: they take turns, and its functions are closed to names of the caller's.

-- The queue's functions are its library's: their names are looked up, in a path without anything of the caller's.
DO $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'procrastinate\_%' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, public, pg_temp', item.name);
    END LOOP;
END
$$;

-- A job's priority is the number of its turn, counted down: one turn after its tenant's last waiting job, and not before
-- the turn that is being worked on. So a tenant's second document comes after everybody's first, however many it queued
-- before they came. Acts as the owner of the tables: a tenant's transaction sees its own jobs only, and whose turn it is
-- depends on all.
CREATE FUNCTION public.rag_take_turn() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present int := coalesce(
        (SELECT min(j.priority) FROM public.procrastinate_jobs j
         WHERE j.queue_name = NEW.queue_name AND j.status = 'doing'),
        (SELECT max(j.priority) FROM public.procrastinate_jobs j
         WHERE j.queue_name = NEW.queue_name AND j.status = 'todo' AND coalesce(j.scheduled_at, now()) <= now()),
        (SELECT min(j.priority) FROM public.procrastinate_jobs j
         WHERE j.queue_name = NEW.queue_name AND j.status = 'todo'),
        0);
    last int := (SELECT min(j.priority) FROM public.procrastinate_jobs j
                 WHERE j.queue_name = NEW.queue_name AND j.args ->> 'tenant_id' = NEW.args ->> 'tenant_id'
                   AND j.status IN ('todo', 'doing'));
BEGIN
    NEW.priority := least(present, last - 1);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION public.rag_take_turn() IS 'Gives a new job its turn among the jobs of all tenants.';
CREATE TRIGGER rag_take_turn BEFORE INSERT ON procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION public.rag_take_turn();

CREATE INDEX procrastinate_jobs_turns ON procrastinate_jobs (queue_name, (args ->> 'tenant_id'), priority)
    WHERE status IN ('todo', 'doing');
