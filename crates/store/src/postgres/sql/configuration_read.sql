SELECT changes FROM configuration
