SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), current_setting('fsync'),
       current_setting('full_page_writes'), current_setting('server_encoding'), current_setting('transaction_read_only'),
       current_setting('synchronous_commit')
