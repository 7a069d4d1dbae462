"""What there is to see, as documents: the JSON API serves them, the page and `ration` draw them."""
