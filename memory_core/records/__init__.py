"""Records from what callers give: completed drafts, patches, corrections."""
