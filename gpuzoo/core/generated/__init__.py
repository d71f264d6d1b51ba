"""Device code that follows from a game's declaration, a module for each part."""
