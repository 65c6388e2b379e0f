"""What the routes work with: built once by the factory, handed to each route by a dependency."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine

from app.catalog.catalog import Catalog
from app.catalog.facts import ModelShelf
from app.features.importing.hub import Hub
from app.features.live.typed_servers import TypedServers
from app.features.validation.errors import ValidationSheet
from app.machine.peaks.service import Bench
from app.machine.probes.sampler import Sampler
from app.machine.recording.recorder import Recorder
from app.settings import Settings
from app.store.links import LinkName, Links
from app.store.samples import Samples
from app.web.problem import ProblemError


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that outlives a request. Without a sound database `engine` is None, and `store_fault` says why."""

    settings: Settings
    catalog: Catalog
    sampler: Sampler
    engine: Engine | None
    hub: Hub
    shelf: ModelShelf
    validation: ValidationSheet
    typed: TypedServers
    bench: Bench
    recorder: Recorder | None = None
    store_fault: str | None = None

    def links(self, kind: LinkName) -> Links:
        """The links of one kind that people keep.

        Raises:
            ProblemError: 503, the product runs as a calculator alone.
        """
        return Links(self._sound, kind)

    @property
    def samples(self) -> Samples:
        """The recorded readings.

        Raises:
            ProblemError: 503, the product runs as a calculator alone.
        """
        return Samples(self._sound)

    @property
    def _sound(self) -> Engine:
        if self.engine is None:
            raise ProblemError(503, "Saved links are not available: the database needs its operator.")
        return self.engine


def services_of(request: Request) -> Services:
    """The services of the app that answers `request`."""
    services: Services = request.app.state.services
    return services


def catalog_of(request: Request) -> Catalog:
    """The catalog of the app that answers `request`."""
    return services_of(request).catalog


def shelf_of(request: Request) -> ModelShelf:
    """What is worked out of each model, of the app that answers `request`."""
    return services_of(request).shelf


def validation_of(request: Request) -> ValidationSheet:
    """The measurements beside their predictions, of the app that answers `request`."""
    return services_of(request).validation


ServicesDep = Annotated[Services, Depends(services_of)]
ShelfDep = Annotated[ModelShelf, Depends(shelf_of)]
ValidationDep = Annotated[ValidationSheet, Depends(validation_of)]
CatalogDep = Annotated[Catalog, Depends(catalog_of)]
