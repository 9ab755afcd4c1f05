"""Drawing shared by the pages: how figures, passages, source cards and page views look everywhere."""
