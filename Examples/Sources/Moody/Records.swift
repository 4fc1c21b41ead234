import Foundation
import Holdfast

// The records of objects, and the objects of records.

extension Record {
  /// The record of an object.
  init?(_ object: ManagedObject) {
    switch object {
    case let continent as Continent: self = .continent(code: continent.code, name: continent.name)
    case let country as Country: self = .country(code: country.code, name: country.name, continent: country.continent?.code)
    case let mood as Mood: self = .mood(id: mood.remoteIdentifier, date: mood.date, colors: mood.colors, country: mood.country?.code)
    default: return nil
    }
  }

  /// Greater than that of the records that it can reference.
  var rank: Int {
    switch self {
    case .continent: 0
    case .country: 1
    case .mood: 2
    }
  }
}

extension ManagedObjectContext {
  /// The IDs of all objects that are synchronized.
  func allObjectIDs() throws -> Set<ManagedObjectID> {
    try Set(fetchObjectIDs(Mood.self) + fetchObjectIDs(Country.self) + fetchObjectIDs(Continent.self))
  }

  /// The record of the object with an ID; nil if it was deleted.
  func record(_ id: ManagedObjectID) throws -> Record? {
    do { return Record(try existingObject(with: id)) } catch let error as PersistenceError where error.code == .missingObject {
      return nil
    }
  }

  /// Applies a change of another device. Sets all properties of an object, also those that the record lacks.
  func apply(_ change: Remote.Change) throws {
    switch change {
    case .saved(.continent(let code, let name)): try region(Continent.self, code).name = name
    case .saved(.country(let code, let name, let continent)):
      let country = try region(Country.self, code)
      country.name = name
      country.continent = try continent.map { try region(Continent.self, $0) }
    case .saved(.mood(let id, let date, let colors, let country)):
      let mood = try mood(id) ?? insert(Mood.self)
      (mood.remoteIdentifier, mood.date, mood.colors) = (id, date, colors)
      mood.country = try country.map { try region(Country.self, $0) }
    case .deleted(let id): if let mood = try mood(id) { delete(mood) }
    }
  }

  private func mood(_ id: String) throws -> Mood? { try fetch(Mood.self, where: { $0.remoteIdentifier == id }).first }

  /// The country or continent with a code, inserted if there is none.
  private func region<Region: GeographicRegion>(_ type: Region.Type, _ code: Int) throws -> Region {
    let region = try fetch(Region.self, where: { $0.code == code }).first ?? insert(Region.self)
    region.code = code
    return region
  }
}
