import Foundation
import Holdfast

// A managed object is a view of a row. Its class binds each attribute and to-one relationship to a slot of the row. Slots are numbered
// in the order of the properties' names. To-many relationships have no slot and are numbered separately.

/// A warehouse with its goods.
final class Warehouse: ManagedObject {
  enum Slot { static let city: SlotIndex = 0, goods = 0 }
  override class var entityName: String { "Warehouse" }
  var city: String {
    get { self[Slot.city] }
    set { self[Slot.city] = newValue }
  }
  var goods: ToMany<Good> { toMany(Slot.goods) }
  override class var properties: [PropertyBinding] {
    [.attribute("city", \Warehouse.city, slot: Slot.city), .toMany("goods", \Warehouse.goods, index: Slot.goods)]
  }
}

/// Goods of one kind in a warehouse.
final class Good: ManagedObject {
  enum Slot { static let amount: SlotIndex = 0, kind: SlotIndex = 1, name: SlotIndex = 2, price: SlotIndex = 3, warehouse: SlotIndex = 4 }
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

  // The framework compares this list with the model. Predicates use it to translate \Good.amount to "amount".
  override class var properties: [PropertyBinding] {
    [
      .attribute("amount", \Good.amount, slot: Slot.amount), .attribute("kind", \Good.kind, slot: Slot.kind),
      .attribute("name", \Good.name, slot: Slot.name), .attribute("price", \Good.price, slot: Slot.price),
      .toOne("warehouse", \Good.warehouse, slot: Slot.warehouse),
    ]
  }
}
