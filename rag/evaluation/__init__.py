"""Ask a collection questions whose answers are known, and measure what it finds and says."""
