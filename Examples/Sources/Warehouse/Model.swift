import Foundation
import Holdfast

/// A warehouse with its goods. Deleting it deletes them.
@Entity final class Warehouse: ManagedObject {
  var city = ""
  // The other end of the relationship is Good.warehouse. Setting one end sets both.
  @Relationship(deleteRule: .cascade, inverse: \Good.warehouse) var goods: ToMany<Good>
}

/// Goods of one kind in a warehouse.
@Entity final class Good: ManagedObject {
  var name = ""
  var kind = ""
  var amount = 0
  // A decimal stores 0.10 exactly; a double doesn't.
  var price: Decimal
  var warehouse: Warehouse?
}
