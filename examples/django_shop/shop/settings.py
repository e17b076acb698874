"""The shop's settings. SHOP_DATABASE_URL and SHOP_FOLDER come from the environment."""

from __future__ import annotations

import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))
DATABASE = conninfo_to_dict(os.environ["SHOP_DATABASE_URL"])

SECRET_KEY = "only for this example"
ALLOWED_HOSTS = ["localhost", "testserver"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "payments_core_http.django",
    "shop",
]
ROOT_URLCONF = "shop.urls"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE["dbname"],
        "USER": DATABASE.get("user", ""),
        "PASSWORD": DATABASE.get("password", ""),
        "HOST": DATABASE.get("host", ""),
        "PORT": DATABASE.get("port", ""),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

PAYMENTS_MODE = "sandbox"
PAYMENTS_SIMULATED_CHAINS = True
PAYMENTS_PUBLIC_URL = "http://localhost:8000/payments"
PAYMENTS_KEYS_RING_FILE = FOLDER / "key-ring"
PAYMENTS_DATABASE = "default"  # the payments have a schema of their own there
PAYMENTS_LIMITER_URL = "memory:"
