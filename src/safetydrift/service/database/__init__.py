"""Where the service keeps everything: tables, migrations, connections."""
