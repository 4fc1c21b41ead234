import Foundation
import Holdfast

// A managed object is a view on a row. Its class says which property lies in which slot of that row: attributes and to-one
// relationships are numbered together, in the order of their names; to-many relationships are counted apart.

/// A place where goods are kept.
final class Warehouse: ManagedObject {
  enum Slot { static let city = 0, goods = 0 }
  override class var entityName: String { "Warehouse" }
  var city: String {
    get { self[Slot.city] }
    set { self[Slot.city] = newValue }
  }
  var goods: ToManyRelationship<Good> { toMany(Slot.goods) }
  override class var properties: [PropertyBinding] {
    [.attribute("city", \Warehouse.city, slot: Slot.city), .toMany("goods", \Warehouse.goods, index: Slot.goods)]
  }
}

/// Something that is kept in a warehouse.
final class Good: ManagedObject {
  enum Slot { static let amount = 0, kind = 1, name = 2, price = 3, warehouse = 4 }
  override class var entityName: String { "Good" }
  var amount: Int {
    get { self[Slot.amount] }
    set { self[Slot.amount] = newValue }
  }
  var kind: String {
    get { self[Slot.kind] }
    set { self[Slot.kind] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var price: Decimal {
    get { self[Slot.price] }
    set { self[Slot.price] = newValue }
  }
  var warehouse: Warehouse? {
    get { toOne(Slot.warehouse) }
    set { setToOne(Slot.warehouse, newValue) }
  }

  // The table by which the stack compares the class with the model, and by which predicates know \Good.amount as "amount".
  override class var properties: [PropertyBinding] {
    [
      .attribute("amount", \Good.amount, slot: Slot.amount), .attribute("kind", \Good.kind, slot: Slot.kind),
      .attribute("name", \Good.name, slot: Slot.name), .attribute("price", \Good.price, slot: Slot.price),
      .toOne("warehouse", \Good.warehouse, slot: Slot.warehouse),
    ]
  }
}
