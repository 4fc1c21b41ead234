import Foundation
import Holdfast

/// The class that the program `BowTies` declares with a macro, written by hand for the model in Xcode's file. Each attribute has a slot,
/// in the order of the names.
final class BowTie: ManagedObject {
  enum Slot {
    static let id: SlotIndex = 0, isFavorite: SlotIndex = 1, lastWorn: SlotIndex = 2, name: SlotIndex = 3, photoData: SlotIndex = 4
    static let rating: SlotIndex = 5, searchKey: SlotIndex = 6, timesWorn: SlotIndex = 7, tintColor: SlotIndex = 8
    static let url: SlotIndex = 9
  }
  var id: UUID {
    get { self[Slot.id] }
    set { self[Slot.id] = newValue }
  }
  var isFavorite: Bool {
    get { self[Slot.isFavorite] }
    set { self[Slot.isFavorite] = newValue }
  }
  var lastWorn: Date? {
    get { self[Slot.lastWorn] }
    set { self[Slot.lastWorn] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var photoData: Data? {
    get { self[Slot.photoData] }
    set { self[Slot.photoData] = newValue }
  }
  var rating: Double {
    get { self[Slot.rating] }
    set { self[Slot.rating] = newValue }
  }
  var searchKey: String {
    get { self[Slot.searchKey] }
    set { self[Slot.searchKey] = newValue }
  }
  var timesWorn: Int {
    get { self[Slot.timesWorn] }
    set { self[Slot.timesWorn] = newValue }
  }
  /// The bytes of a colour. An accessor with `self[transformable:]` has its value.
  var tintColor: Data? {
    get { self[Slot.tintColor] }
    set { self[Slot.tintColor] = newValue }
  }
  var url: URL? {
    get { self[Slot.url] }
    set { self[Slot.url] = newValue }
  }
  override class var properties: [PropertyBinding] {
    [
      .attribute("id", \BowTie.id, slot: Slot.id), .attribute("isFavorite", \BowTie.isFavorite, slot: Slot.isFavorite),
      .attribute("lastWorn", \BowTie.lastWorn, slot: Slot.lastWorn), .attribute("name", \BowTie.name, slot: Slot.name),
      .attribute("photoData", \BowTie.photoData, slot: Slot.photoData), .attribute("rating", \BowTie.rating, slot: Slot.rating),
      .attribute("searchKey", \BowTie.searchKey, slot: Slot.searchKey), .attribute("timesWorn", \BowTie.timesWorn, slot: Slot.timesWorn),
      .attribute("tintColor", \BowTie.tintColor, slot: Slot.tintColor), .attribute("url", \BowTie.url, slot: Slot.url),
    ]
  }
}
