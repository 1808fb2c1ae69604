"""The gallery: experiments that others have published, repeated; a study each."""
