import Foundation
import Holdfast

/// A place with a number of ISO 3166, which is the same on all devices. Every country and continent is one. Regions aren't deleted.
@Entity(isAbstract: true) class GeographicRegion: ManagedObject {
  @Attribute(.unique) var code = 0
  var name = ""
}

extension GeographicRegion {
  static func remoteIdentifier(_ code: Int) -> String { "region \(code)" }
}

@Entity final class Continent: GeographicRegion {
  @Relationship(inverse: \Country.continent) var countries: ToMany<Country>
}

@Entity final class Country: GeographicRegion {
  var continent: Continent?
  @Relationship(inverse: \Mood.country) var moods: ToMany<Mood>
}

/// The colors of a moment. Each device can add, change and delete moods.
@Entity final class Mood: ManagedObject {
  // The device that adds a mood chooses its identifier. So an upload can be repeated, and a download finds the mood again: a new object
  // with a known identifier becomes the known one. The history keeps the identifier of a deleted mood.
  @Attribute(.unique, .preservedInHistory) var remoteIdentifier: String = UUID().uuidString
  var date = Date()
  var colors = ""
  var country: Country?
}
