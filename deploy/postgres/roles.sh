#!/bin/sh
# Makes the two roles and the database of docs/operations.md, once, when the volume is new.
set -eu
psql --set ON_ERROR_STOP=1 --set owner="$OWNER_PASSWORD" --set app="$APP_PASSWORD" --username postgres <<'SQL'
CREATE ROLE rag_owner LOGIN PASSWORD :'owner' CREATEROLE;
CREATE ROLE rag_app LOGIN PASSWORD :'app' NOSUPERUSER NOBYPASSRLS;
GRANT rag_app TO rag_owner WITH ADMIN OPTION;
CREATE DATABASE hr OWNER rag_owner;
REVOKE TEMPORARY ON DATABASE hr FROM PUBLIC;
\connect hr
CREATE SCHEMA extensions AUTHORIZATION rag_owner;
CREATE EXTENSION vector WITH SCHEMA extensions;
SQL
