"""``python -m contact_id_controller`` is the command ``contact_id``."""

from contact_id_controller.cli import main

if __name__ == "__main__":
    main()
