import Foundation
import Holdfast

/// An object of the entity Base.
class Base: ManagedObject {
  override class var entityName: String { "Base" }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}
