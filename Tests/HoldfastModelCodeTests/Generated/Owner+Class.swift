import Holdfast

/// An object of the entity Owner.
nonisolated final class Owner: ManagedObject {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}
