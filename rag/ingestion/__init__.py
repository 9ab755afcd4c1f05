"""From a file to searchable passages: extract, chunk, embed, tag, publish; each step durable."""
