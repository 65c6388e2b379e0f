"""What both faces need at the edge: headers, errors, assets, templates, urls."""
