RELEASE operation
