from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

KEY = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]

    operations = [
        migrations.CreateModel(name="Order", fields=[("id", KEY)]),
        migrations.CreateModel(
            name="OrderLine",
            fields=[
                ("id", KEY),
                ("order", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="shop.order")),
            ],
        ),
    ]
