"""The certificate: recall measured on a sample of the items, with a confidence interval."""
