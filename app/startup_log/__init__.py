"""What an inference engine's start-up log says: a pasted log in, figures and a partial scenario out."""
