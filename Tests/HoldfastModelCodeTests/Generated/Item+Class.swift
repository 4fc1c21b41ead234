import Foundation
import Holdfast

/// An object of the entity Item.
final class Item: Base {
  override class var entityName: String { "Item" }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}
