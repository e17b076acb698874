from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("amount", models.CharField(max_length=40)),
                ("payment_id", models.CharField(max_length=100, null=True, unique=True)),
                ("shipped_at", models.DateTimeField(null=True)),
            ],
        ),
    )
