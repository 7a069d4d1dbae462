"""Tools of this repository; nothing here ships."""
