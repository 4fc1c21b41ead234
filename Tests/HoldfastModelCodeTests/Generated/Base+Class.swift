import Holdfast

/// An object of the entity Base.
nonisolated class Base: ManagedObject {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}
