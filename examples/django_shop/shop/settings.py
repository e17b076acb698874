"""The shop's settings. PAYMENTS_DATABASE_URL and SHOP_FOLDER come from the environment."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))

SECRET_KEY = "only for this example"
ALLOWED_HOSTS = ["localhost", "testserver"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "shop.db"}}
USE_TZ = True

PAYMENTS_DATABASE_URL = os.environ["PAYMENTS_DATABASE_URL"]
PAYMENTS_KEY_RING = FOLDER / "key-ring"
PAYMENTS_PUBLIC_URL = os.environ.get("PAYMENTS_PUBLIC_URL", "http://localhost:8000")
