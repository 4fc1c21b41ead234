import Foundation

/// A bow tie in the property list of samples.
struct SampleData: Decodable {
  let id: UUID
  let isFavorite: Bool
  let lastWorn: Date?
  let name: String
  let photo: Data
  let rating: Double
  let searchKey: String
  let timesWorn: Int
  let tintColor: Color
  let url: URL

  /// Reads all samples.
  static func read(_ file: URL) throws -> [SampleData] {
    try PropertyListDecoder().decode([SampleData].self, from: Data(contentsOf: file))
  }

  private enum CodingKeys: String, CodingKey { case id, isFavorite, lastWorn, name, photo, rating, searchKey, timesWorn, tintColor, url }

  /// Property lists have no UUIDs or URLs; both are strings there.
  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    id = try values.decode(UUID.self, forKey: .id)
    isFavorite = try values.decode(Bool.self, forKey: .isFavorite)
    lastWorn = try values.decodeIfPresent(Date.self, forKey: .lastWorn)
    name = try values.decode(String.self, forKey: .name)
    photo = try values.decode(Data.self, forKey: .photo)
    rating = try values.decode(Double.self, forKey: .rating)
    searchKey = try values.decode(String.self, forKey: .searchKey)
    timesWorn = try values.decode(Int.self, forKey: .timesWorn)
    tintColor = try values.decode(Color.self, forKey: .tintColor)
    let address = try values.decode(String.self, forKey: .url)
    guard let url = URL(string: address) else {
      throw DecodingError.dataCorruptedError(forKey: .url, in: values, debugDescription: "The url isn't a valid URL.")
    }
    self.url = url
  }
}
