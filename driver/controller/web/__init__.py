"""The page and the JSON API: what there is to see, over HTTP, for reading only."""
