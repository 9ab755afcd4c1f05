-- People, how they sign in, and the keys and programs that act for them.

-- People of a tenant. A new column needs a grant of its own (the last file), because nobody may select password_hash.
CREATE TABLE accounts (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    email text NOT NULL CHECK (email = lower(email)),
    name text NOT NULL DEFAULT '',
    role text NOT NULL CHECK (role IN ('employee', 'manager', 'admin')),
    user_group text NOT NULL DEFAULT '',
    password_hash text NOT NULL,
    is_active boolean NOT NULL DEFAULT true,
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    last_signed_in_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    password_asked_at timestamptz,
    last_collection_id uuid,
    waiting_browsers jsonb NOT NULL DEFAULT '[]',
    language text NOT NULL DEFAULT '' CHECK (language ~ '^[a-z]{0,3}$'),
    directory_fields jsonb,
    removed_by_directory_at timestamptz,
    CONSTRAINT accounts_email_of_tenant UNIQUE (tenant_id, email),
    CONSTRAINT accounts_of_tenant UNIQUE (id, tenant_id),
    FOREIGN KEY (last_collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE SET NULL (last_collection_id)
);
CREATE INDEX ON accounts (tenant_id);
CREATE INDEX accounts_email ON accounts (email);
COMMENT ON COLUMN accounts.password_asked_at IS 'Since when somebody waits for a link to a new password; null: nobody.';
COMMENT ON COLUMN accounts.last_collection_id IS
    'The collection of the last question; null: none yet, or it is deleted.';
COMMENT ON COLUMN accounts.waiting_browsers IS 'Unknown browsers that wait for their turn at the password, as hashes.';
COMMENT ON COLUMN accounts.language IS 'Language of the interface, as two letters; empty: that of the browser.';
COMMENT ON COLUMN accounts.directory_fields IS 'What the directory calls this person, as it wrote it: names and its own id.';
COMMENT ON COLUMN accounts.removed_by_directory_at IS
    'The directory deleted this person. The account is disabled and stays, because the logs refer to it.';

-- Told to a sign-in alone, for the one account that it names. Volatile: where a row was locked, the password that it was
-- changed to meanwhile is the one to check.
CREATE FUNCTION public.rag_password_hash(p_account_id uuid) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (public.rag_verified('checks') = p_account_id::text) IS NOT TRUE THEN
        RAISE insufficient_privilege USING MESSAGE = 'This transaction checks no password of this account.';
    END IF;
    RETURN (SELECT a.password_hash FROM public.accounts a
            WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
END
$$;
COMMENT ON FUNCTION public.rag_password_hash(uuid) IS
    'The stored hash of the account whose password the identity of this transaction says it checks.';

-- Who shared, answered or added something is named to people who may not read others' accounts.
CREATE FUNCTION public.rag_name_of(p_account_id uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN (SELECT a.name FROM public.accounts a WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
COMMENT ON FUNCTION public.rag_name_of(uuid) IS 'The name of a person of this tenant.';

CREATE FUNCTION public.rag_address_of(p_account_id uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    RETURN (SELECT a.email FROM public.accounts a WHERE a.id = p_account_id AND a.tenant_id = public.rag_tenant());
COMMENT ON FUNCTION public.rag_address_of(uuid) IS 'The e-mail address of a person of this tenant.';

-- People change their own account (its password, its language), and no right that it has.
CREATE FUNCTION public.rag_keep_rights() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT public.rag_reads_all() THEN
        RAISE insufficient_privilege USING MESSAGE = 'Only an administrator changes what an account may do.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_rights BEFORE UPDATE ON accounts FOR EACH ROW
    WHEN ((OLD.id, OLD.tenant_id, OLD.email, OLD.role, OLD.user_group, OLD.is_active)
          IS DISTINCT FROM (NEW.id, NEW.tenant_id, NEW.email, NEW.role, NEW.user_group, NEW.is_active))
    EXECUTE FUNCTION rag_keep_rights();

-- People who are signed in, by the hash of a token that their browser keeps.
CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    user_agent text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- When the person last proved who they are: as the session began, before that at a provider, or when they were
    -- asked again. Null: as it began.
    proved_at timestamptz,
    CONSTRAINT sessions_of_tenant UNIQUE (token_hash, tenant_id),
    CONSTRAINT sessions_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sessions (account_id);
CREATE INDEX ON sessions (tenant_id);

-- Links that work once: the first administrator's, invitations.
CREATE TABLE one_time_links (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    purpose text NOT NULL CHECK (purpose IN ('first_admin', 'set_password', 'second_factor')),
    account_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    CONSTRAINT one_time_links_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON one_time_links (tenant_id);

-- Browsers in which somebody has signed in, by the hash of a token they keep. A known browser's wrong passwords count
-- apart, so that strangers keep nobody out; unknown browsers take turns.
CREATE TABLE known_browsers (
    token_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- Wrong passwords in this browser since the last right one.
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    last_used_at timestamptz NOT NULL DEFAULT now(),
    -- The same for wrong codes of a second factor.
    failed_codes integer NOT NULL DEFAULT 0,
    last_failed_code_at timestamptz,
    PRIMARY KEY (token_hash, account_id),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON known_browsers (account_id, tenant_id);
CREATE INDEX ON known_browsers (tenant_id);
COMMENT ON TABLE known_browsers IS 'Browsers in which an account has signed in; their wrong passwords count apart.';

-- A second factor beside the password: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for a lost
-- telephone. tenants.settings says which roles need one.
CREATE TABLE second_factors (
    account_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Encrypted with the key that seals identities, which this role cannot read.
    secret bytea NOT NULL,
    -- When a code of it was right for the first time; null: not in use yet.
    confirmed_at timestamptz,
    -- The half minute of the last code: none works twice.
    last_step bigint NOT NULL DEFAULT 0,
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    -- Unknown browsers that wait for their turn at the code, as in accounts.
    waiting_browsers jsonb NOT NULL DEFAULT '[]',
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON second_factors (tenant_id);

-- Codes that each sign in once in place of a second factor.
CREATE TABLE recovery_codes (
    account_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    used_at timestamptz,
    PRIMARY KEY (account_id, code_hash),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON recovery_codes (tenant_id);

-- The accounts of people who sign in at another service. The hash covers the service and its name for the person.
CREATE TABLE external_identities (
    subject_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, issuer),
    CONSTRAINT external_identities_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON external_identities (tenant_id);

-- Sessions that began at another service: found again by its sign-out messages, and checked there from time to time.
CREATE TABLE session_origins (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    issuer text NOT NULL,
    subject_hash bytea NOT NULL,
    -- Of the other service's session, where it names one.
    session_hash bytea,
    -- The token for the next check at the other service, encrypted.
    secret bytea,
    -- When to check again; null: never.
    check_after timestamptz,
    CONSTRAINT session_origins_token_hash_fkey FOREIGN KEY (token_hash, tenant_id)
        REFERENCES sessions (token_hash, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON session_origins (tenant_id);
CREATE INDEX ON session_origins (subject_hash);
CREATE INDEX ON session_origins (session_hash);

-- Keys by which programs call the API for a tenant. Only the hash of a key's secret is kept.
CREATE TABLE api_keys (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE,
    -- The first characters of the secret, by which a person recognises it.
    hint text NOT NULL,
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    requests_per_minute integer NOT NULL DEFAULT 120 CHECK (requests_per_minute BETWEEN 1 AND 100000),
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '90 days',
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- The minute that is being counted, and its requests: right for all processes, because it is one row.
    minute_started_at timestamptz,
    minute_requests integer NOT NULL DEFAULT 0,
    default_collection_id uuid,
    -- Made by the operator on the command line; it belongs to no person.
    is_operators boolean NOT NULL DEFAULT false,
    CONSTRAINT api_keys_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT api_keys_last_collection_id_tenant_id_fkey FOREIGN KEY (default_collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (default_collection_id),
    CONSTRAINT api_keys_created_by_fkey FOREIGN KEY (created_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (created_by)
) WITH (fillfactor = 50);
CREATE INDEX ON api_keys (tenant_id);
COMMENT ON COLUMN api_keys.created_by IS
    'Its owner: the key works while they are an active administrator. Null: of the operator, or of somebody deleted.';
COMMENT ON COLUMN api_keys.default_collection_id IS
    'The collection that is asked when a call names none; null: the oldest HR collection with documents.';

-- Programs that people connect to their account by OAuth. A program acts as the person, within the scopes they agreed to;
-- of its codes and tokens only hashes are kept.
CREATE TABLE connected_apps (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- As the program calls itself, and the host its codes go to, which is what a person can judge it by.
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    host text NOT NULL,
    client_id text NOT NULL CHECK (length(client_id) <= 4000),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    redirect_uri text NOT NULL,
    code_challenge text NOT NULL,
    code_hash bytea UNIQUE,
    code_expires_at timestamptz,
    access_hash bytea UNIQUE,
    access_expires_at timestamptz,
    refresh_hash bytea UNIQUE,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    -- What the program asked access to: a path of this server, "" for all of it.
    resource text NOT NULL DEFAULT '' CHECK (resource IN ('', '/mcp')),
    UNIQUE (id, tenant_id),
    CONSTRAINT connected_apps_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON connected_apps (account_id);
CREATE INDEX ON connected_apps (tenant_id);
COMMENT ON TABLE connected_apps IS 'Programs that act for a person, connected by OAuth.';

-- Each code and refresh token of a connected program that was used: one that comes again was stolen, however often the
-- program was given new ones since.
CREATE TABLE used_app_tokens (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    app_id uuid NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT used_app_tokens_app_id_fkey FOREIGN KEY (app_id, tenant_id)
        REFERENCES connected_apps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON used_app_tokens (app_id);
CREATE INDEX ON used_app_tokens (tenant_id);
COMMENT ON TABLE used_app_tokens IS 'Codes and refresh tokens of connected programs that were used.';

-- An account's programs end when its role changes or it is disabled.
CREATE FUNCTION public.rag_end_programs() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.connected_apps WHERE account_id = NEW.id;
    RETURN NULL;
END;
$$;
CREATE TRIGGER end_programs AFTER UPDATE OF role, is_active ON accounts FOR EACH ROW
    WHEN (OLD.role IS DISTINCT FROM NEW.role OR (OLD.is_active AND NOT NEW.is_active))
    EXECUTE FUNCTION rag_end_programs();
