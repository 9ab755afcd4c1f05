"""Connect the directories in which companies keep their people: OpenID Connect and SCIM."""
