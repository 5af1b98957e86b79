from django.db import models
from django_tenants.models import DomainMixin, TenantMixin


class Client(TenantMixin):
    name = models.CharField(max_length=100)
    ready = models.BooleanField(default=True)


class Domain(DomainMixin):
    pass
