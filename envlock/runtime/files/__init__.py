"""Deep verification: compare the installed files with their RECORDs, and find files that no package
owns.
"""
