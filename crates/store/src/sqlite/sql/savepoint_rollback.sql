ROLLBACK TO operation
