"""Facts about models, accelerators and engines: data files with sources, and the loaders that refuse a row without."""
