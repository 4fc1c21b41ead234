import Holdfast

/// An object of the entity Item.
nonisolated final class Item: Base {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}
