"""What `ration validate` makes of what people wrote. Pure: documents in, findings out."""
