"""Turn a file into searchable passages: extract, chunk, embed, tag, publish; each step durable."""
