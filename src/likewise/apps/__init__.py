"""What similarity is good for: one package for each application of Section 3.8 and its neighbours."""
