"""Draw the parts that the pages share."""
